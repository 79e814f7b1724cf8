"""Object stores: whole objects under names, as S3 keeps them, or a directory tree."""
