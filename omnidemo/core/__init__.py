"""What every wing uses: records, figures of an answer, options and settings, paths, processes."""
