/** Why no text comes out of a file, in words for whoever owns it. */
const reasons = {
  no_text: 'No text was found in the file; it may be empty, or hold pictures only.',
  unsupported_file: 'Text cannot be read from files of this kind.',
  encrypted: 'The file is protected by a password.',
  invalid_file: 'The file is damaged, or is not what it seems to be.',
  too_large: 'The file holds more than is read of one file.',
  extraction_limit: 'Reading the file took more time or memory than it may.',
}

export type UnreadableCode = keyof typeof reasons

/** The file itself is why there is no text: reading it again will not help. */
export class UnreadableFile extends Error {
  override readonly name = 'UnreadableFile'
  readonly code: UnreadableCode

  constructor(code: UnreadableCode, cause?: unknown) {
    super(reasons[code], cause === undefined ? undefined : { cause })
    this.code = code
  }
}

export function isUnreadableCode(code: unknown): code is UnreadableCode {
  return typeof code === 'string' && Object.hasOwn(reasons, code)
}
