"""A frontier on a server: Redis, Valkey, Kvrocks, one or a cluster."""
