#!/bin/sh
# Fetches a Linux kernel that has SCTP, for tests on machines whose own kernel has none (crate testpeer, module sctp):
# Debian's image, and an initial file system that sees the machine's files over 9p. Nothing is installed.
# Usage: scripts/test-kernel.sh FOLDER
set -eu

folder=$1
[ ! -e "$folder/initrd" ] || exit 0
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
work=$(mktemp -d "$folder/make.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

package=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -1)
version=${package#linux-image-}
apt-get download -qq "$package" busybox-static 2>/dev/null
for archive in *.deb; do
    dpkg-deb -x "$archive" root
done
PATH=$PATH:/usr/sbin:/sbin depmod -b root "$version"

# In the order in which they can be loaded: each after those that it needs.
modules=root/lib/modules/$version
mkdir -p first/bin first/dev first/modules first/proc first/root
cp root/bin/busybox first/bin/
{
    echo kernel/crypto/crc32c_generic.ko
    for module in virtio_pci 9pnet_virtio 9p sctp; do
        sed -n "s|^\(.*/$module.ko\): *\(.*\)|\1 \2|p" "$modules/modules.dep" | tr ' ' '\n' | tac
    done
} | awk 'NF && !seen[$0]++' | awk '{ printf "%02d %s\n", NR, $0 }' | while read -r number module; do
    cp "$modules/$module" "first/modules/$number.ko"
done

cat > first/init <<'INIT'
#!/bin/busybox sh
# Runs the program that the kernel's command line names by `script=` in the machine's own file system, which it only reads.
box=/bin/busybox
$box mount -t proc proc /proc
for module in /modules/*; do
    $box insmod "$module"
done
if $box mount -t 9p -o trans=virtio,version=9p2000.L,msize=1048576,cache=loose,ro machine /root; then
    $box mount -t proc proc /root/proc
    $box mount -t sysfs sys /root/sys
    $box mount -t devtmpfs dev /root/dev
    $box mount -t tmpfs tmpfs /root/mnt
    $box mount -t tmpfs tmpfs /root/run
    $box chroot /root /bin/sh "$($box sed 's/.*script=\([^ ]*\).*/\1/' /proc/cmdline)"
fi
$box poweroff -f
INIT
chmod +x first/init

cp "root/boot/vmlinuz-$version" "$folder/kernel"
(cd first && find . | ../root/bin/busybox cpio -o -H newc 2>/dev/null) > initrd
mv initrd "$folder/initrd"
