import { AppError } from '#lib/errors.ts'

/** What a caller is told when there is no descriptor for the socket to an upstream. */
export function noDescriptorLeft(): AppError {
  return new AppError('no_descriptor_left', 'The server has no descriptor left for this request.', {
    retryAfterS: 1,
  })
}
