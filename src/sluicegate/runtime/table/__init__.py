"""Tables whose rows are replaced and deleted under a key: their logs, and the databases that they come from."""
