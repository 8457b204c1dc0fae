"""Topics of Kafka as streams."""
