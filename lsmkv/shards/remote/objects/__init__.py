"""Object stores: whole objects under names, in S3 or another store, or in a directory tree."""
