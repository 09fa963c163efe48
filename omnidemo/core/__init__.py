"""The base of all wings: records, figures of an answer, options and settings, paths, processes."""
