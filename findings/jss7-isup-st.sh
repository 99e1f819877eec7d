#!/usr/bin/env bash
# Which called numbers jSS7 can write.
#
# Guess:     a called party number that was read is written as it came, with code 11, code 12 and ST (address signals 1011, 1100 and 1111,
#            Q.763 §3.9 d) as it shows them: b, c, f.
# Behaviour: all are read. Where the count of signals is odd, the last one is written as a decimal digit: a number that ends with ST behind
#            an even number of digits, or with code 11 or 12 of an odd count, ends in a NumberFormatException, whether it was read from an IAM
#            or made of "4366f". Behind an odd number of digits ST is written.
# Version:   jSS7 8.0.112 (Maven Central, org.mobicents.protocols.ss7.isup:isup-impl).
# Matters:   an application that passes IAMs on, with another routing number or cause, fails for the calls whose exchange sends whole numbers
#            with ST, and for one number in two only: a test with 11 digits passes.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId>
  <artifactId>finding</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.mobicents.protocols.ss7.isup</groupId>
      <artifactId>isup-impl</artifactId>
      <version>8.0.112</version>
      <exclusions>
        <exclusion><groupId>org.mobicents.protocols.stream</groupId><artifactId>*</artifactId></exclusion>
        <exclusion><groupId>org.mobicents.commons</groupId><artifactId>*</artifactId></exclusion>
      </exclusions>
    </dependency>
  </dependencies>
</project>
XML
mvn -q -B -Dmaven.repo.local="$dir/m2" dependency:copy-dependencies -DoutputDirectory=jars >maven.log
cat >Numbers.java <<'JAVA'
import java.util.HexFormat;
import org.mobicents.protocols.ss7.isup.impl.message.parameter.CalledPartyNumberImpl;

class Numbers {
    static String written(CalledPartyNumberImpl number) {
        try {
            return HexFormat.of().formatHex(number.encode());
        } catch (Exception e) {
            return e.getClass().getSimpleName();
        }
    }

    public static void main(String[] arguments) throws Exception {
        for (String octets : new String[] {"04103466", "841034660f", "8410346600", "04103466f0", "8410340b06", "841034060b"}) {
            CalledPartyNumberImpl number = new CalledPartyNumberImpl(HexFormat.of().parseHex(octets));
            System.out.println(octets + " reads " + number.getAddress() + ", written: " + written(number));
        }
        for (String digits : new String[] {"4366f", "43660f"}) {
            System.out.println(digits + " written: " + written(new CalledPartyNumberImpl(4, digits, 1, 0)));
        }
    }
}
JAVA
seen=$(java -cp 'jars/*' Numbers.java 2>java.log)
echo "$seen"
diff <(echo "$seen") - <<'SEEN'
04103466 reads 4366, written: 04103466
841034660f reads 4366f, written: NumberFormatException
8410346600 reads 43660, written: 8410346600
04103466f0 reads 43660f, written: 04103466f0
8410340b06 reads 43b06, written: 8410340b06
841034060b reads 4360b, written: NumberFormatException
4366f written: NumberFormatException
43660f written: 04103466f0
SEEN
