/**
 * What clients keep for us, so that nothing has to be stored here: authenticated and encrypted, for
 * one owner and one purpose. Sealed texts are ASCII without spaces.
 */
export type Sealer = {
  seal(purpose: SealPurpose, ownerId: string, plain: string): string
  /**
   * The plain text; null where this is no seal of ours at all, as when a client brings one of
   * another service. Throws `invalid_encrypted_content` for one of ours that was altered, belongs to
   * somebody else, was made for another purpose, or whose key is gone.
   */
  open(purpose: SealPurpose, ownerId: string, sealed: string): string | null
}

/** `request`: the body of a background request, which may hold credentials, until it runs. */
export type SealPurpose = 'reasoning' | 'compaction' | 'request'
