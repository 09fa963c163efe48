"""Several computing processes by Ray: replicas of a pair, and actors that train. Ray is imported on first
use."""
