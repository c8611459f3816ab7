import { AppError } from '#lib/errors.ts'

export function foreign(): AppError {
  return new AppError(
    'upstream_invalid_answer',
    'The upstream sent something that is no part of a message.',
  )
}

export function truncated(): AppError {
  return new AppError(
    'upstream_truncated',
    'The upstream ended its answer without a stop reason: the answer was truncated.',
  )
}

export function reportedError(): AppError {
  return new AppError('upstream_error', 'The upstream reported an error.')
}
