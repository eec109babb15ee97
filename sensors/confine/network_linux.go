package confine

import (
	"encoding/binary"
	"net/netip"
	"syscall"
	"unsafe"
)

const (
	siocGetFlags = 0x8913
	siocSetFlags = 0x8914
	siocSetAddr  = 0x8916
	siocIndex    = 0x8933
)

// ifreq is struct ifreq: a name of 16 bytes and 24 of what is asked.
type ifreq struct {
	name [16]byte
	data [24]byte
}

func ioctl(fd int, what uintptr, arg unsafe.Pointer) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), what, uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}

// listen brings the loopback of this network namespace up, gives it the addresses
// and listens on them; the descriptors come in the order of the addresses.
func listen(addrs []string) (fds []int, err error) {
	defer func() {
		if err != nil {
			for _, fd := range fds {
				syscall.Close(fd)
			}
		}
	}()
	if err := up(); err != nil {
		return nil, err
	}
	for i, a := range addrs {
		ap, err := netip.ParseAddrPort(a)
		if err != nil {
			return fds, syscall.EINVAL
		}
		if !ap.Addr().IsLoopback() {
			if err := add(ap.Addr(), i); err != nil {
				return fds, err
			}
		}
		fd, err := listenOn(ap)
		if err != nil {
			return fds, err
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

func listenOn(ap netip.AddrPort) (int, error) {
	var sa syscall.Sockaddr = &syscall.SockaddrInet6{Port: int(ap.Port()), Addr: ap.Addr().As16()}
	family := syscall.AF_INET6
	if ap.Addr().Is4() {
		family, sa = syscall.AF_INET, &syscall.SockaddrInet4{Port: int(ap.Port()), Addr: ap.Addr().As4()}
	}
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	if err = syscall.Bind(fd, sa); err == nil {
		err = syscall.Listen(fd, 16)
	}
	if err != nil {
		syscall.Close(fd)
		return 0, err
	}
	return fd, nil
}

// up brings lo up, which gives it 127.0.0.1/8 and ::1.
func up() error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	var r ifreq
	copy(r.name[:], "lo")
	if err := ioctl(fd, siocGetFlags, unsafe.Pointer(&r)); err != nil {
		return err
	}
	binary.NativeEndian.PutUint16(r.data[:], binary.NativeEndian.Uint16(r.data[:])|syscall.IFF_UP|syscall.IFF_RUNNING)
	return ioctl(fd, siocSetFlags, unsafe.Pointer(&r))
}

// add gives lo another address: the n-th alias for IPv4, beside the others for IPv6.
func add(a netip.Addr, n int) error {
	family := syscall.AF_INET
	if a.Is6() {
		family = syscall.AF_INET6
	}
	fd, err := syscall.Socket(family, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	var r ifreq
	copy(r.name[:], "lo")
	if a.Is6() {
		if err := ioctl(fd, siocIndex, unsafe.Pointer(&r)); err != nil {
			return err
		}
		in6 := struct {
			addr   [16]byte
			prefix uint32
			index  uint32
		}{a.As16(), 128, binary.NativeEndian.Uint32(r.data[:])}
		if err := ioctl(fd, siocSetAddr, unsafe.Pointer(&in6)); err != nil && err != syscall.EEXIST { //nolint:errorlint // an errno of ours
			return err
		}
		return nil
	}
	copy(r.name[:], "lo:"+string(rune('a'+n%26)))
	binary.NativeEndian.PutUint16(r.data[:], syscall.AF_INET)
	v4 := a.As4()
	copy(r.data[4:], v4[:])
	return ioctl(fd, siocSetAddr, unsafe.Pointer(&r))
}
