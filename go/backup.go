package forrest

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// Backup is a backup in a directory of backups.
type Backup struct {
	// ID is its number, above 0. Later backups have greater ones.
	ID uint64
	// Time is when it was made, by the clock of the system.
	Time time.Time
	// Bytes of the store that it has, and NewBytes that were copied for it.
	Bytes    uint64
	NewBytes uint64
	// Files of the store that it has.
	Files uint64
}

// Backup adds a backup of the store, as it is at one moment of this call, to a directory of backups, which is made if it
// is missing. Only what no earlier backup there has is copied. Readers and writers do not wait meanwhile. The backup
// survives a loss of power when this returns. If the newest backup there is of another directory, it fails with
// [ErrInvalidArgument]. The end of the context ends the call, with its error; earlier backups stay whole.
func (db *DB) Backup(ctx context.Context, directory string) (Backup, error) {
	defer runtime.KeepAlive(db)
	return stoppable(ctx, func(stop *int32) (Backup, error) { return db.h.backup(directory, stop) })
}

// VerifyBackup reads every byte of a backup, and checks it: of that with a number, or of the newest one for 0.
func VerifyBackup(ctx context.Context, directory string, id uint64) (Backup, error) {
	return stoppable(ctx, func(stop *int32) (Backup, error) { return verifyBackup(directory, id, stop) })
}

// RestoreBackup makes a new store in a directory, which does not exist or is empty, of the backup with a number, or of
// the newest one for 0. The store gets its name when it is complete and durable.
func RestoreBackup(ctx context.Context, directory string, id uint64, to string) (Backup, error) {
	return stoppable(ctx, func(stop *int32) (Backup, error) { return restoreBackup(directory, id, to, stop) })
}

// stoppable runs a call that reads `stop` now and then, and ends if it is not 0.
func stoppable(ctx context.Context, run func(stop *int32) (Backup, error)) (Backup, error) {
	var stop int32
	if ctx != nil {
		if ctx.Err() != nil {
			return Backup{}, context.Cause(ctx)
		}
		forget := context.AfterFunc(ctx, func() { atomic.StoreInt32(&stop, 1) })
		defer forget()
	}
	backup, err := run(&stop)
	if err != nil && atomic.LoadInt32(&stop) != 0 {
		err = context.Cause(ctx)
	}
	return backup, err
}
