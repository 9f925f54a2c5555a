package nicety

import "errors"

// The kinds of errors of a call, for errors.Is.
var (
	// ErrInput is an invalid argument. A program that ends with it has status 2.
	ErrInput = errors.New("invalid argument")
	// ErrFailed is a failed call: the other end has another size or kind, or does not exist.
	ErrFailed = errors.New("failed")
	// ErrTrap is a process of the card that was stopped.
	ErrTrap = errors.New("process stopped")
	// ErrTimedOut is a call with another end that did not take part in time.
	ErrTimedOut = errors.New("timed out")
)

// Error is an error of a call.
type Error struct {
	kind error
	text string
}

func (e *Error) Error() string { return e.text }

// Unwrap returns ErrInput, ErrFailed, ErrTrap or ErrTimedOut.
func (e *Error) Unwrap() error { return e.kind }

func inputError(text string) error { return &Error{ErrInput, text} }

// errorOf returns the error of a code of channels.h.
func errorOf(code int64, text string) error {
	switch code {
	case 0:
		return nil
	case 1:
		return &Error{ErrInput, text}
	case 3:
		return &Error{ErrTrap, text}
	case 4:
		return &Error{ErrTimedOut, text}
	default:
		return &Error{ErrFailed, text}
	}
}
