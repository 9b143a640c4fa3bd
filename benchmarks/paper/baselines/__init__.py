"""What the paper compares with; none of it is fit for use, so none of it is in the package."""
