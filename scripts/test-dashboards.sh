#!/usr/bin/env bash
# Grafana's own types judge the dashboards: each file of deploy/observability/dashboards is compiled as a value of `Dashboard` of npm's
# @grafana/schema. `make test-dashboards`; needs Node with npm, and the network the first time.
set -euo pipefail
cd "$(dirname "$0")/.."

for program in node npm; do
  command -v "$program" > /dev/null || { echo "$program is missing (apt-get install nodejs npm)" >&2; exit 1; }
done
work=target/grafana
mkdir -p "$work"
cat > "$work/package.json" <<'JSON'
{"private": true, "dependencies": {"@grafana/schema": "13", "typescript": "5"}}
JSON
(cd "$work" && npm install --no-audit --no-fund --ignore-scripts --silent)
rm -f "$work"/*.ts
count=0
for file in deploy/observability/dashboards/*.json; do
  count=$((count + 1))
  # A text of JSON stands where the types have a constant of an enumeration.
  {
    echo "import type { Dashboard } from '@grafana/schema';"
    echo "type Plain<T> = T extends string ? \`\${T}\` : T extends number | boolean | null | undefined ? T"
    echo "  : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;"
    echo -n "export const dashboard: Plain<Dashboard> = "
    cat "$file"
  } > "$work/$(basename "$file" .json).ts"
done
(cd "$work" && npx tsc --noEmit --strict --skipLibCheck --module nodenext --moduleResolution nodenext --target es2022 ./*.ts) ||
  { echo "FAILED: a dashboard is none by Grafana's types" >&2; exit 1; }
echo "ok: $count dashboards are what Grafana's types say"
