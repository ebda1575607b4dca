"""What the tables say in words: findings, each with its evidence and a bound of the time to be won."""
