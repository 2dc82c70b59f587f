/** An ordered key-value store in memory and on disk, over the native library of Forrest. */
package forrest;
