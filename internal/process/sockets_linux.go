package process

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"net/netip"
	"slices"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"cursor-wrap/internal/tree"
)

// askedMax is how many sockets are asked for one by one. Beyond that a dump of
// all of them is cheaper: it walks a table with room for as many as the machine
// could ever have, which takes some 200 µs, and an answer 4.
const askedMax = 32

// sockets are the TCP sockets of our network namespace, as sock_diag(7) shows
// them. A dump shows all of them, but not whose they are; that is found out by
// a scan of the members' descriptors when an inode comes up that was not there
// before. Between dumps only those of the tree are asked for. A dump is due
// when the namespace has opened a connection since the last one, as the
// counters of /proc/net/snmp tell.
type sockets struct {
	line    map[int]*nl.SocketHandle // to the kernel; nil while there is none
	counter kept                     // /proc/net/snmp
	ns      uint64                   // our network namespace

	dumped  bool                  // a dump was made, and can be built upon
	opened  int64                 // connections that were opened until then
	waiting bool                  // there were some without an inode: nobody has accepted them yet
	mine    map[uint64]*tcpSocket // of the tree, by inode
	others  map[uint64]bool       // inodes of strangers' sockets
	fresh   map[uint64]*tcpSocket // whose they are has not been looked up yet
}

type tcpSocket struct {
	tree.Socket
	family byte
	id     [diagIDSize]byte // by which the kernel finds it
	dump   bool             // it was in the present dump
}

// What is needed of <linux/inet_diag.h> and <linux/sock_diag.h>.
const (
	dumpAll    = 18 // TCPDIAG_GETSOCK, the one request that shows both families in one walk
	byFamily   = 20 // SOCK_DIAG_BY_FAMILY
	diagInfo   = 2  // INET_DIAG_INFO, a struct tcp_info
	diagIDSize = 48 // struct inet_diag_sockid
	diagMsg    = 72 // struct inet_diag_msg

	// Those of a connection that was begun and is not over: all but listening,
	// half-open and waiting for stray segments.
	connected = 1<<unix.BPF_TCP_ESTABLISHED | 1<<unix.BPF_TCP_SYN_SENT | 1<<unix.BPF_TCP_FIN_WAIT1 |
		1<<unix.BPF_TCP_FIN_WAIT2 | 1<<unix.BPF_TCP_CLOSE_WAIT | 1<<unix.BPF_TCP_LAST_ACK | 1<<unix.BPF_TCP_CLOSING
)

// lookUpSockets puts the sockets into the rows. It reports whether they could
// be looked up for all of the tree.
func (s *Sampler) lookUpSockets() bool {
	t := &s.tcp
	if t.ns == 0 {
		t.ns, t.mine, t.others = netNamespace("/proc/self/"), map[uint64]*tcpSocket{}, map[uint64]bool{}
	}
	for _, w := range s.here {
		if w.scans < sights { // it may hold what its parent held until it execs
			s.scan(w)
			w.scans++
			for _, inode := range w.held {
				if t.others[inode] { // it was handed in, or came before its holder
					delete(t.others, inode)
					t.dumped = false
				}
			}
		}
	}
	if !s.refresh() {
		return false
	}
	s.attribute()
	whole := true
	for i, w := range s.here {
		whole = whole && !w.hidden && !w.foreign
		for _, inode := range w.held {
			if k := t.mine[inode]; k != nil {
				s.snap.Rows[i].Sockets = append(s.snap.Rows[i].Sockets, k.Socket)
			}
		}
	}
	return whole
}

// refresh asks for the state of the tree's sockets, or of all. It fails where
// the kernel does not tell.
func (s *Sampler) refresh() bool {
	t := &s.tcp
	opened, counted := s.connections() // before the dump, so that it lacks none that is counted
	if t.dumped && counted && opened == t.opened && !t.waiting && len(t.mine) <= askedMax {
		if t.again((*sockets).ask) == nil {
			return true
		}
	}
	err := t.again((*sockets).dump)
	t.dumped, t.opened = err == nil && counted, opened
	return err == nil
}

// attribute finds out whose the fresh sockets are, and drops those that nobody
// of the tree holds any more.
func (s *Sampler) attribute() {
	t := &s.tcp
	if len(t.fresh) == 0 && s.allHeld() {
		return
	}
	for _, w := range s.here {
		s.scan(w)
	}
	for inode, k := range t.fresh {
		t.mine[inode] = k
	}
	t.fresh = nil
	held := make(map[uint64]bool, len(t.mine))
	for _, w := range s.here {
		for _, inode := range w.held {
			held[inode] = true
		}
	}
	for inode := range t.mine {
		if !held[inode] {
			delete(t.mine, inode)
			t.others[inode] = true
		}
	}
}

// allHeld reports whether somebody in the rows holds each of the tree's
// sockets, as far as is known. A holder that has ended may have handed it on.
func (s *Sampler) allHeld() bool {
	for inode := range s.tcp.mine {
		if !slices.ContainsFunc(s.here, func(w *watched) bool { return slices.Contains(w.held, inode) }) {
			return false
		}
	}
	return true
}

// scan lists the sockets among a process's descriptors.
func (s *Sampler) scan(w *watched) {
	ns := netNamespace(w.dir)
	w.foreign = ns != 0 && s.tcp.ns != 0 && ns != s.tcp.ns // what cannot be read is taken for ours
	w.held = w.held[:0]
	err := s.eachFile(w.dir, func(_ int, target []byte) {
		if rest, ok := bytes.CutPrefix(target, []byte("socket:[")); ok {
			if inode, _ := number(rest); !slices.Contains(w.held, uint64(inode)) {
				w.held = append(w.held, uint64(inode))
			}
		}
	})
	w.hidden = errors.Is(err, fs.ErrPermission)
}

// eachFile calls do for each descriptor of a process. The bytes are good for
// the call.
func (r *reader) eachFile(dir string, do func(fd int, target []byte)) error {
	folder, err := unix.Open(dir+"fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(folder)
	r.found, err = r.listFD(r.found[:0], folder)
	for _, fd := range r.found {
		var target [256]byte
		n, e := unix.Readlinkat(folder, itoa(fd), target[:])
		switch {
		case e == nil:
			do(fd, target[:n])
		case errors.Is(e, fs.ErrPermission):
			err = e
		}
	}
	return err
}

// netNamespace is the inode of a process's network namespace; 0 where it
// cannot be read.
func netNamespace(dir string) uint64 {
	var st unix.Stat_t
	if unix.Stat(dir+"ns/net", &st) != nil {
		return 0
	}
	return st.Ino
}

// connections counts those that were ever opened in our network namespace,
// from here and from there.
func (s *Sampler) connections() (int64, bool) {
	b, err := s.read(&s.tcp.counter, "/proc/self/net/", "snmp")
	if err != nil {
		return 0, false
	}
	names := []byte("\nTcp: ")
	i := bytes.Index(b, names)
	j := bytes.LastIndex(b, names)
	if i < 0 || j <= i {
		return 0, false
	}
	b = b[j+len(names):]
	var fields [6]int64 // RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens
	for i := range fields {
		b = bytes.TrimLeft(b, " -")
		fields[i], b = number(b)
	}
	return fields[4] + fields[5], true
}

// again makes a request, and once more over a new line if it fails.
func (t *sockets) again(request func(*sockets) error) error {
	if t.line != nil {
		if request(t) == nil {
			return nil
		}
		t.hangUp()
	}
	line, err := nl.Subscribe(unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return err
	}
	t.line = map[int]*nl.SocketHandle{unix.NETLINK_SOCK_DIAG: {Socket: line}}
	if err := request(t); err != nil {
		t.hangUp()
		return err
	}
	return nil
}

func (t *sockets) hangUp() {
	if t.line != nil {
		t.line[unix.NETLINK_SOCK_DIAG].Close()
		t.line = nil
	}
}

func (t *sockets) close(r *reader) {
	t.hangUp()
	r.let(&t.counter)
}

// dump goes through all sockets: it brings those of the tree up to date, drops
// what is gone and gathers what is new.
func (t *sockets) dump() error {
	request := make([]byte, 60) // struct inet_diag_req
	request[0] = unix.AF_INET   // that of all: it is not looked at
	request[3] = 1 << (diagInfo - 1)
	binary.NativeEndian.PutUint32(request[52:], connected)
	t.fresh, t.waiting = map[uint64]*tcpSocket{}, false
	others := make(map[uint64]bool, len(t.others))
	for _, k := range t.mine {
		k.dump = false
	}
	req := nl.NewNetlinkRequest(dumpAll, unix.NLM_F_DUMP)
	req.Sockets = t.line
	req.AddRawData(request)
	err := req.ExecuteIter(unix.NETLINK_SOCK_DIAG, 0, func(b []byte) bool {
		inode, ok := inodeOf(b)
		k := t.mine[inode]
		switch {
		case !ok:
		case inode == 0: // nobody's yet, or nobody's any more
			t.waiting = t.waiting || b[1] == unix.BPF_TCP_ESTABLISHED || b[1] == unix.BPF_TCP_CLOSE_WAIT
		case t.others[inode]:
			others[inode] = true
		case k != nil && bytes.Equal(k.id[:], b[4:4+diagIDSize]):
			k.update(b)
			k.dump = true
		default:
			delete(t.mine, inode)
			t.fresh[inode] = newTCP(inode, b)
		}
		return true
	})
	if err != nil && !errors.Is(err, nl.ErrDumpInterrupted) {
		return err
	}
	t.others = others
	for inode, k := range t.mine {
		if !k.dump {
			delete(t.mine, inode)
		}
	}
	return nil
}

// ask brings the sockets of the tree up to date, one by one, and drops what is
// gone.
func (t *sockets) ask() error {
	var request [8 + diagIDSize]byte // struct inet_diag_req_v2
	request[1] = unix.IPPROTO_TCP
	request[2] = 1 << (diagInfo - 1)
	binary.NativeEndian.PutUint32(request[4:], ^uint32(0))
	for inode, k := range t.mine {
		request[0] = k.family
		copy(request[8:], k.id[:])
		req := nl.NewNetlinkRequest(byFamily, 0)
		req.Sockets = t.line
		req.AddRawData(request[:])
		found := false
		err := req.ExecuteIter(unix.NETLINK_SOCK_DIAG, 0, func(b []byte) bool {
			if now, ok := inodeOf(b); ok && now == inode {
				k.update(b)
				found = true
			}
			return true
		})
		switch {
		case err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ESTALE):
			return err
		case !found:
			delete(t.mine, inode)
		}
	}
	return nil
}

// inodeOf is that of a struct inet_diag_msg; 0 while, or since, the socket has
// no descriptor.
func inodeOf(b []byte) (uint64, bool) {
	if len(b) < diagMsg {
		return 0, false
	}
	return uint64(binary.NativeEndian.Uint32(b[68:])), true
}

func newTCP(inode uint64, b []byte) *tcpSocket {
	k := &tcpSocket{family: b[0], dump: true}
	copy(k.id[:], b[4:])
	k.Inode, k.Peer = inode, k.peer().String()
	k.update(b)
	return k
}

// peer is in network order in a struct inet_diag_sockid: two ports, our own
// address, theirs.
func (k *tcpSocket) peer() netip.AddrPort {
	port := binary.BigEndian.Uint16(k.id[2:])
	addr := netip.AddrFrom16([16]byte(k.id[20:36])).Unmap()
	if k.family == unix.AF_INET {
		addr = netip.AddrFrom4([4]byte(k.id[20:24]))
	}
	return netip.AddrPortFrom(addr, port)
}

// update takes the counters from the struct tcp_info behind the message.
func (k *tcpSocket) update(b []byte) {
	k.Received, k.Sent, k.Quiet = tree.Unknown, tree.Unknown, tree.Unknown
	for b = b[diagMsg:]; len(b) >= unix.SizeofRtAttr; {
		size, kind := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])
		if size < unix.SizeofRtAttr || size > len(b) {
			return
		}
		if kind == diagInfo {
			k.take(b[unix.SizeofRtAttr:size])
		}
		b = b[min((size+3)&^3, len(b)):]
	}
}

func (k *tcpSocket) take(info []byte) {
	const (
		quiet    = int(unsafe.Offsetof(unix.TCPInfo{}.Last_data_recv))
		sent     = int(unsafe.Offsetof(unix.TCPInfo{}.Bytes_acked))
		received = int(unsafe.Offsetof(unix.TCPInfo{}.Bytes_received))
	)
	if len(info) >= quiet+4 {
		k.Quiet = time.Duration(binary.NativeEndian.Uint32(info[quiet:])) * time.Millisecond
	}
	if len(info) >= received+8 { // since Linux 4.1
		k.Sent = int64(binary.NativeEndian.Uint64(info[sent:]))
		k.Received = int64(binary.NativeEndian.Uint64(info[received:]))
	}
}
