#!/bin/sh
# Moves target set addresses of a pair of IP front ends: for `ipfe.pair.takeover` and `ipfe.pair.release`.
#
#   tsa.sh here INTERFACE ADDRESS/LENGTH…    add the addresses to this machine, and announce them to the neighbours
#   tsa.sh away INTERFACE ADDRESS/LENGTH…    remove them
#
# Both may run again: what is done already stays as it is. Neighbours learn of an IPv4 address by gratuitous ARP
# (RFC 5227 §3; Debian's iputils-arping), of an IPv6 address by the kernel's unsolicited neighbour advertisement
# (RFC 4861 §7.2.6). It needs CAP_NET_ADMIN and CAP_NET_RAW.
set -eu

die() { echo "tsa.sh: $*" >&2; exit 1; }

[ $# -ge 3 ] || die "expected: here|away INTERFACE ADDRESS/LENGTH..."
verb=$1 interface=$2
shift 2
[ -e "/sys/class/net/$interface" ] || die "the interface $interface does not exist"

# Neither loopback (0x8) nor an interface without ARP (0x80) has neighbours that need it.
flags=$(cat "/sys/class/net/$interface/flags")
announces=yes
if [ $((flags & 0x88)) -ne 0 ]; then announces=; fi

has() { [ -n "$(ip -o address show dev "$interface" to "${1%/*}")" ]; }

here() {
  case $1 in
    *:*)
      # No duplicate address detection: the mate is gone, and its time would be an outage.
      if [ -n "$announces" ]; then echo 1 > "/proc/sys/net/ipv6/conf/$interface/ndisc_notify"; fi
      has "$1" || ip address add "$1" dev "$interface" nodad
      ;;
    *)
      has "$1" || ip address add "$1" dev "$interface"
      if [ -n "$announces" ]; then
        command -v arping > /dev/null || die "arping is missing (apt-get install iputils-arping): $1 is here, but not announced"
        arping -q -U -c 2 -w 2 -I "$interface" "${1%/*}" || die "$1 is here, but could not be announced"
      fi
      ;;
  esac
}

away() {
  if has "$1"; then ip address del "$1" dev "$interface"; fi
}

for address in "$@"; do
  case $verb in
    here) here "$address" ;;
    away) away "$address" ;;
    *) die "the verb $verb does not exist; valid are here and away" ;;
  esac
done
