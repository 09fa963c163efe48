"""More than one process that computes: replicas of a pair, and actors that train. Ray is imported when it is
used, and only then."""
