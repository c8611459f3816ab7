import { AppError } from '#lib/errors.ts'

/** What disks, quotas and limits of processes say when there is no room. */
const fullCodes = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

/** The error for people where the disk is full; any other as it is. */
export function orDiskFull(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (typeof code !== 'string' || !fullCodes.has(code)) return error
  return new AppError('insufficient_storage', 'The disk has no room for the model.', {
    cause: error,
  })
}
