package forrest

import "fmt"

// Code is a kind of error. The constants are for errors.Is.
type Code int32

// The kinds of errors.
const (
	// ErrNotFound: the key, or the keyspace, does not exist.
	ErrNotFound Code = 1
	// ErrMismatch: a comparison found another value than the expected one. Nothing was changed.
	ErrMismatch Code = 3
	// ErrConflict: a value that the transaction has read has changed since. Nothing was changed; run it again, as
	// [DB.Update] does.
	ErrConflict Code = 4
	// ErrIO: a system call failed. The call changed nothing.
	ErrIO Code = -1
	// ErrCorrupt: stored bytes are damaged. The message names file and offset.
	ErrCorrupt Code = -2
	// ErrInvalidArgument: change the call.
	ErrInvalidArgument Code = -3
	// ErrLimit: a key, a value or a batch exceeds a limit.
	ErrLimit Code = -4
	// ErrOutOfSpace: memory, disk space or file descriptors are used up.
	ErrOutOfSpace Code = -5
	// ErrBusy: the store is open elsewhere, or a lock was not to be had in time.
	ErrBusy Code = -6
	// ErrUnsupported: this home, or this build of the library, does not have the feature. See [DB.Capabilities].
	ErrUnsupported Code = -7
	// ErrStopped: an earlier failure made the store refuse all changes. Open it again, or see [DB.Resume].
	ErrStopped Code = -8
	// ErrConditionFailed: a comparison of a batch found another value. Nothing was changed; [Error] has its number.
	ErrConditionFailed Code = -9
	// ErrGone: the changes after a sequence number are no longer kept. Start from a snapshot.
	ErrGone Code = -10
	// ErrInternal: a defect of the library; please report the message.
	ErrInternal Code = -100
	// ErrClosed: the store, snapshot, transaction or cursor was closed.
	ErrClosed Code = -1000
)

var texts = map[Code]string{
	ErrNotFound:        "not found",
	ErrMismatch:        "mismatch: the value is not the expected one",
	ErrConflict:        "conflict: a value that the transaction has read has changed",
	ErrIO:              "I/O error",
	ErrCorrupt:         "corrupt",
	ErrInvalidArgument: "invalid argument",
	ErrLimit:           "limit exceeded",
	ErrOutOfSpace:      "out of space",
	ErrBusy:            "busy",
	ErrUnsupported:     "unsupported",
	ErrStopped:         "stopped",
	ErrConditionFailed: "condition failed",
	ErrGone:            "gone",
	ErrInternal:        "internal error",
	ErrClosed:          "closed",
}

// Error returns a text for the kind.
func (c Code) Error() string {
	if text, ok := texts[c]; ok {
		return "forrest: " + text
	}
	return fmt.Sprintf("forrest: unknown code %d", int32(c))
}

// Error is an error with the library's message: its kind, what failed, and where.
type Error struct {
	// Code is the kind, for which errors.Is holds.
	Code Code
	// Message is the library's text.
	Message string
	// Change is the number, from 0, of the change of a batch that failed; -1 if the failure was about none.
	Change int
}

// Error returns the message.
func (e *Error) Error() string { return "forrest: " + e.Message }

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Code }

func invalid(format string, arguments ...any) error {
	return &Error{ErrInvalidArgument, "invalid argument: " + fmt.Sprintf(format, arguments...), -1}
}
