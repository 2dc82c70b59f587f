package forrest

import (
	"context"
	"io"
	"iter"
	"runtime"
)

// BlobWriter writes a blob: a value of any length, which is written and read in pieces. It is an [io.WriteCloser].
// Goroutines that share one take turns.
type BlobWriter struct{ exclusive }

// NewBlob begins to write a blob, in pieces of pieceBytes: 1 KiB to 64 MiB, or 0 for 256 KiB. A keyspace has either pairs
// or blobs; an empty one becomes a keyspace of blobs. Nobody sees the blob before [BlobWriter.Finish]. Close the writer.
func (w *writer) NewBlob(key []byte, pieceBytes uint32) (*BlobWriter, error) {
	defer runtime.KeepAlive(w)
	h, err := w.h.newBlob(key, pieceBytes)
	if err != nil {
		return nil, err
	}
	blob := &BlobWriter{exclusive{h: h}}
	closeWith(blob, h)
	return blob, nil
}

// Write adds bytes. After an error the blob is discarded.
func (b *BlobWriter) Write(bytes []byte) (int, error) {
	if err := b.use(func(h *handle) error { return h.blobWrite(bytes) }); err != nil {
		return 0, err
	}
	return len(bytes), nil
}

// Finish makes the blob visible, whole, in place of the one that its key had. It is as durable then as a change of the
// store. The writer is closed in each case.
func (b *BlobWriter) Finish() error { return b.end((*handle).blobFinish) }

// Close discards a blob that was not made visible. After Finish it does nothing.
func (b *BlobWriter) Close() error {
	if b == nil {
		return nil
	}
	return b.close()
}

// Blob is a blob that is read, as it was when it was opened. It is an [io.ReadSeeker] and an [io.ReaderAt], and Size is
// its length in bytes. One goroutine at a time may use Read and Seek, and any number ReadAt.
type Blob struct {
	io.SectionReader
	at *blobAt
}

// blobAt reads a blob.
type blobAt struct{ exclusive }

// OpenBlob opens a blob, or returns [ErrNotFound]. The store keeps it until it is closed, also if its key gets another
// one.
func (r *reader) OpenBlob(key []byte) (*Blob, error) {
	defer runtime.KeepAlive(r)
	h, bytes, err := r.h.openBlob(key)
	if err != nil {
		return nil, err
	}
	at := &blobAt{exclusive{h: h}}
	closeWith(at, h)
	return &Blob{*io.NewSectionReader(at, 0, int64(bytes)), at}, nil
}

// ReadAt implements [io.ReaderAt].
func (b *blobAt) ReadAt(to []byte, offset int64) (n int, err error) {
	err = b.use(func(h *handle) (err error) {
		n, err = h.blobRead(uint64(offset), to)
		return err
	})
	if err == nil && n < len(to) {
		err = io.EOF
	}
	return n, err
}

// Close lets go of the blob. Closing it again does nothing.
func (b *Blob) Close() error {
	if b == nil || b.at == nil {
		return nil
	}
	return b.at.close()
}

// DeleteBlob removes a blob. [ErrNotFound] if there is none.
func (w *writer) DeleteBlob(key []byte) error {
	defer runtime.KeepAlive(w)
	return w.h.deleteBlob(key)
}

// BlobInfo is a blob in a list.
type BlobInfo struct {
	Key   []byte
	Bytes uint64
}

// Blobs iterates over the keys of blobs and their lengths, in the order of the keys; no blob is read. Bounds may not be
// reversed.
func (w *writer) Blobs(ctx context.Context, in Bounds) iter.Seq2[BlobInfo, error] {
	return func(yield func(BlobInfo, error) bool) {
		if in.Reverse {
			yield(BlobInfo{}, invalid("blobs are listed in ascending order only"))
			return
		}
		w.pairs(ctx, in, pageBlobs, func(pair Pair, err error) bool {
			if err != nil {
				return yield(BlobInfo{}, err)
			}
			return yield(BlobInfo{pair.Key, order.Uint64(pair.Value)}, nil)
		})
	}
}
