package nicety

// The memory that the process and the simulator share: the layout of shim/protocol.h and channels.h, which explain it.

const (
	magic       = 0x5845795465634e
	version     = 8
	page        = 4096
	bellAt      = page
	slotsAt     = 2 * page
	slotBytes   = 4 * page
	anyValue    = ^uint64(0)
	turnRun     = 0
	turnCall    = 1
	turnSleep   = 4
	completions = 24
	kinds       = 6

	callChannels = 48
	// At the end of a rank's first page, behind the reason of a refusal.
	words       = 32
	reasonBytes = 512

	directBytes  = 56
	arguments    = 8
	alternatives = 1024
)

const (
	opOpen uint32 = iota + 1
	opLoad
	opStart
	opFinished
	opMemory
	opRead
	opWrite
	opSubscribe
	opClose
	opSend
	opReceive
	opSendInd
	opReceiveInd
	opSelect
	opGo
	opJoin
	opEnd
	opCompute
	opSleep
	opBarrier
)

type header struct {
	magic       uint64
	version     uint32
	ranks       uint32
	ended       uint32
	spins       uint32
	simulator   uint32
	measured    uint32
	clockCostPs uint64
	epochNs     uint64
	scale       float64
	lookCostPs  uint64
	tagBits     uint32
	card        uint32
	atomicBytes uint32
	fetchBytes  uint32
	launcher    uint32
	begun       uint32
	asleep      uint32
}

type completion struct {
	context uint64
	flags   uint32
	err     int32
	bytes   uint64
	address uint64
	data    uint64
	tag     uint64
	source  uint64
	cut     uint64
}

type slot struct {
	turn         uint32
	pid          uint32
	nowPs        uint64
	spentPs      uint64
	clockReads   uint64
	call         uint32
	flags        uint32
	args         [8]uint64
	result       int64
	completions  uint32
	ended        uint32
	completion   [completions]completion
	posted       uint32
	taken        uint32
	quietPs      uint64
	looksLeft    uint32
	looks        uint32
	counts       counts
	end          uint32
	endCode      int32
	fork         uint32
	loaded       uint32
	watched      uint32
	shared       [8][96]byte
	service      uint32
	names        uint32
	library      uint32
	guard        uint64
	libraryPath  [192]byte
	looksOfWaits uint32
	sending      uint32
	receiving    uint32
}

type counts struct {
	done   [kinds]uint64
	failed [kinds]uint64
}
