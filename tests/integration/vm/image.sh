# shellcheck shell=bash
# Makes a small guest out of this machine's own programs and a packaged kernel, and boots it under QEMU without KVM: tests of what only another kernel or
# another set of cgroups can show. Needs qemu-system-x86_64, a kernel package, busybox (static), mke2fs, cpio. Nothing here needs root.

vm_kernel= vm_release=

# vm_missing: prints what keeps a guest from being made; nothing when all is there.
vm_missing() {
  local p
  [ "$(uname -m)" = x86_64 ] || { echo "the guest is made for x86-64 only"; return; }
  for p in qemu-system-x86_64 busybox mke2fs cpio gzip ldd; do
    command -v $p >/dev/null 2>&1 || PATH=$PATH:/sbin:/usr/sbin command -v $p >/dev/null 2>&1 || { echo "$p is not installed"; return; }
  done
  ldd "$(command -v busybox)" >/dev/null 2>&1 && { echo "busybox is not the static one (package busybox-static)"; return; }
  for p in /boot/vmlinuz-*; do
    vm_release=${p#/boot/vmlinuz-}
    [ -r "$p" ] && [ -r "/lib/modules/$vm_release/modules.dep" ] && vm_kernel=$p
  done
  [ -n "$vm_kernel" ] || { echo "no kernel with its modules is in /boot (package linux-image-cloud-amd64)"; return; }
  vm_release=${vm_kernel#/boot/vmlinuz-}
}

# vm_add_modules ROOT NAME…: with what they depend on, in an order that insmod takes: ROOT/modules/NN-name.ko. One that is built in is left out.
vm_add_modules() {
  local root=$1 name line file; shift
  mkdir -p "$root/modules"
  for name; do
    line=$(grep -E "(^|/)${name//_/[-_]}\.ko[.a-z]*:" "/lib/modules/$vm_release/modules.dep") || continue
    # "a: b c": c is needed by b
    for file in $(tr ' ' '\n' <<<"${line/:/ }" | grep . | tac); do
      vm_add_module "$root/modules" "/lib/modules/$vm_release/$file"
    done
  done
}

vm_add_module() { # FOLDER FILE
  local name
  name=$(basename "$2"); name=${name%%.*}
  compgen -G "$1/*-$name.ko" >/dev/null && return
  name=$1/$(printf %02d "$(find "$1" -type f | wc -l)")-$name.ko
  case $2 in *.xz) xz -dc "$2" ;; *.zst) zstd -dqc "$2" ;; *.gz) gzip -dc "$2" ;; *) cat "$2" ;; esac >"$name"
}

# vm_add_program ROOT FILE…: with its shared libraries, at the same places below /usr.
vm_add_program() {
  local root=$1 file lib; shift
  for file; do
    cp -L "$file" "$root/usr/bin/"
    for lib in $(ldd "$file" 2>/dev/null | grep -oE '/[^ ]+'); do
      mkdir -p "$root/usr/$(dirname "${lib#/usr}")"
      cp -Ln "$lib" "$root/usr/${lib#/usr}"
    done
  done
}

# vm_make_root ROOT: a merged-usr system with busybox, bash and the util-linux programs that make namespaces and give up root.
vm_make_root() {
  local root=$1 name
  mkdir -p "$root"/{usr/bin,usr/sbin,usr/lib,usr/lib64,etc,dev,proc,sys,tmp,run,root,var/tmp,var/lib,opt,home}
  for name in bin sbin lib lib64; do ln -s "usr/$name" "$root/$name"; done
  for name in $(busybox --list); do ln -s busybox "$root/usr/bin/$name"; done
  rm -f "$root"/usr/bin/{busybox,bash}
  cp "$(command -v busybox)" "$root/usr/bin/busybox"
  vm_add_program "$root" "$(command -v bash)"
  for name in setpriv unshare pgrep; do rm -f "$root/usr/bin/$name"; vm_add_program "$root" "$(command -v $name)"; done
  echo "root:x:0:0:root:/root:/bin/bash" >"$root/etc/passwd"
  echo "root:x:0:" >"$root/etc/group"
}

# vm_make_initramfs FILE: loads modules, mounts the disk, becomes its /init.
vm_make_initramfs() {
  local tree=$1.tree
  mkdir -p "$tree"/{bin,dev,proc,disk}
  cp "$(command -v busybox)" "$tree/bin/busybox"
  vm_add_modules "$tree" virtio_pci virtio_blk ext4 overlay
  cat >"$tree/init" <<'END'
#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
for m in /modules/*; do /bin/busybox insmod "$m"; done
/bin/busybox mount -t ext4 /dev/vda /disk && exec /bin/busybox switch_root /disk /init
echo "not ok - the guest can't mount its disk"
/bin/busybox reboot -f
END
  chmod +x "$tree/init"
  (cd "$tree" && find . | cpio -o -H newc --quiet --owner 0:0 | gzip -1) >"$1"
}

vm_make_disk() { # FILE ROOT SIZE
  PATH=$PATH:/sbin:/usr/sbin mke2fs -q -F -t ext4 -O ^has_journal -E root_owner=0:0 -d "$2" "$1" "$3"
}

# vm_boot DISK INITRAMFS SECONDS: the console on stdout; ends when the guest restarts.
vm_boot() {
  timeout -k 5 "$3" qemu-system-x86_64 -M pc -cpu qemu64,+rdrand -accel tcg,tb-size=128 -smp 2 -m 768 -nodefaults -no-user-config -display none -no-reboot \
    -kernel "$vm_kernel" -initrd "$2" -drive "if=none,id=disk,file=$1,format=raw,cache=unsafe" -device virtio-blk-pci,drive=disk -serial stdio \
    -append "console=ttyS0 quiet loglevel=1 panic=-1 random.trust_cpu=on mitigations=off cryptomgr.notests no_timer_check ${vm_append-}" </dev/null | tr -d '\r'
}
