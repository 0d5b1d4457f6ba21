"""Matrix mechanisms: strategies, participations, and Gaussian noise on what they make of a stream."""
