"""Matrix mechanisms, against every pattern of small strategies."""
