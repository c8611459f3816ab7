import type { TextFormat } from './text-format.ts'
import type { UnreadableCode } from './unreadable.ts'

/** The first line that a child writes: from here on, how it ends is owed to the file. */
export const readyLine = 'ready\n'

export type ChildRequest = {
  readonly format: TextFormat
  readonly charsMax: number
}

export type ChildReport =
  | {
      readonly type: 'read'
      readonly pages: readonly number[] | null
      /** Of the text that follows, in UTF-8. */
      readonly bytes: number
    }
  | { readonly type: 'unreadable'; readonly code: UnreadableCode }
