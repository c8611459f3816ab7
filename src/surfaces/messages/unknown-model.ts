import { AppError } from '#lib/errors.ts'

/** In the words of the protocol, and the same for a model that is hidden and for one that is not. */
export function unknownModel(name: string, cause?: unknown): AppError {
  return new AppError('model_not_found', `model: ${name}`, { param: 'model', cause })
}
