"""What the data pipeline does in a second: how fast Spark reads and writes topics, scans journals, makes reports."""
