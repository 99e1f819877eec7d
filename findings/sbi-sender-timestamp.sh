#!/usr/bin/env bash
# Which readers of HTTP dates read a 3gpp-Sbi-Sender-Timestamp (TS 29.500 §5.2.3.2: the date of RFC 9110 with milliseconds).
#
# Guess:     what reads the Date of HTTP reads this header: it differs by ".845" alone.
# Behaviour: the readers of HTTP libraries refuse it (httpdate of hyper with an error, Werkzeug and Apache HttpClient by
#            returning nothing, as for an absent header); a general reader (dateutil) keeps the milliseconds.
# Version:   httpdate 1.0.3, Werkzeug 3.1.3, httpclient5 5.3.1, python-dateutil 2.9.0.
# Matters:   with 3gpp-Sbi-Max-Rsp-Time the header bounds how long a request may wait. A function that reads it with its HTTP
#            library carries out requests whose consumer has given up, and never notices. It takes a reader of its own.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv v
v/bin/pip -q --disable-pip-version-check install werkzeug==3.1.3 python-dateutil==2.9.0
cargo init -q --name finding --vcs none . 2>/dev/null
cargo add -q httpdate@=1.0.3 2>/dev/null
cat >src/main.rs <<'RS'
fn main() {
    for text in std::env::args().skip(1) {
        println!("httpdate   {}", httpdate::parse_http_date(&text).map_or_else(|error| error.to_string(), |_| "read".into()));
    }
}
RS
cat >pom.xml <<'XML'
<project><modelVersion>4.0.0</modelVersion><groupId>f</groupId><artifactId>f</artifactId><version>1</version><dependencies><dependency>
<groupId>org.apache.httpcomponents.client5</groupId><artifactId>httpclient5</artifactId><version>5.3.1</version></dependency></dependencies></project>
XML
mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib >/dev/null
cat >Read.java <<'JAVA'
public class Read {
    public static void main(String[] texts) {
        for (String text : texts)
            System.out.println("httpclient " + org.apache.hc.client5.http.utils.DateUtils.parseStandardDate(text));
    }
}
JAVA
cat >read.py <<'PY'
import sys
import dateutil.parser
import werkzeug.http

for text in sys.argv[1:]:
    print("werkzeug  ", werkzeug.http.parse_date(text))
for text in sys.argv[1:]:
    print("dateutil  ", dateutil.parser.parse(text))
PY
dates=("Sun, 04 Aug 2019 08:49:37 GMT" "Sun, 04 Aug 2019 08:49:37.845 GMT")
seen=$(
    cargo run -q -- "${dates[@]}" 2>/dev/null
    v/bin/python read.py "${dates[@]}"
    java -cp 'lib/*' Read.java "${dates[@]}" 2>/dev/null
)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
httpdate   read
httpdate   string contains no or an invalid date
werkzeug   2019-08-04 08:49:37+00:00
werkzeug   None
dateutil   2019-08-04 08:49:37+00:00
dateutil   2019-08-04 08:49:37.845000+00:00
httpclient 2019-08-04T08:49:37Z
httpclient null
SEEN
