"""The shuffle model: local randomisers whose reports lose their order."""
