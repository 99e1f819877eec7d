//! YAML to typed, validated configuration: every mistake at once, with line and column.
