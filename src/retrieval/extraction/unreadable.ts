import type { TextWarning } from './gaps.ts'

/** Messages for the owner of the file. */
const reasons = {
  no_text: 'The file has no text; it may be empty or contain images only.',
  unsupported_file: 'Text cannot be extracted from files of this type.',
  encrypted: 'The file is protected by a password.',
  invalid_file: 'The file is damaged or has the wrong type.',
  too_large: 'The content of the file exceeds the size limit.',
  extraction_limit: 'Text extraction exceeded its time or memory limit.',
}

export type UnreadableCode = keyof typeof reasons

/** The file is the cause; a retry would fail too. */
export class UnreadableFile extends Error {
  override readonly name = 'UnreadableFile'
  readonly code: UnreadableCode
  readonly warnings: readonly TextWarning[]

  constructor(code: UnreadableCode, cause?: unknown, warnings: readonly TextWarning[] = []) {
    super(reasons[code], cause === undefined ? undefined : { cause })
    this.code = code
    this.warnings = warnings
  }
}

export function isUnreadableCode(code: unknown): code is UnreadableCode {
  return typeof code === 'string' && Object.hasOwn(reasons, code)
}
