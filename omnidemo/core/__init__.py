"""The base of all packages: records, figures of an answer, options and settings, paths, processes."""
