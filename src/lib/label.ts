import { refused } from './unprocessable.ts'

const labelCharsMax = 100

/** The trimmed name of a resource, from the field `name`; throws an `AppError` of status 422. */
export function readLabel(text: string): string {
  const name = text.trim()
  if (name.length < 1 || name.length > labelCharsMax) {
    throw refused('name', `"name" must have 1 to ${labelCharsMax} characters.`)
  }
  if (/\p{Cc}/u.test(name) || !name.isWellFormed()) {
    throw refused('name', '"name" must be plain text on one line.')
  }
  return name
}

/** Whether the database can store a text: no NUL and no lone surrogate. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}
