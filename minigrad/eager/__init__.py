"""The eager engine: ops run at once and leave a backward graph behind."""
