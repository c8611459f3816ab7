import { constants } from 'node:zlib'

/** RFC 9659: HTTP content uses windows of at most 8 MiB. */
const windowLogMax = 23

/** Limits the memory of every zstd decompressor of bodies from outside, received or fetched. */
export const zstdParams = { [constants.ZSTD_d_windowLogMax]: windowLogMax }
