"""What the data pipeline does in a second."""
