import { Type } from '@sinclair/typebox'
import type { Config } from '#config/schema.ts'

/** The keys of sealing. */
export const sealingKeys = {
  sealKeys: Type.Optional(
    Type.String({
      description:
        'Comma-separated encryption keys for client-held state (reasoning, compactions): the first encrypts, all decrypt. By default, a key is generated and kept in the database.',
      minLength: 32,
      env: 'SLUICE_SEAL_KEYS',
      secret: true,
    }),
  ),
}

const sealKeyCharsMin = 32

/** Rules of these keys beyond the schema. */
export function* sealingFaults(config: Config): Generator<string> {
  const sealKeys = config.sealKeys?.split(',') ?? []
  if (sealKeys.some((key) => key.trim().length < sealKeyCharsMin)) {
    yield `seal_keys (SLUICE_SEAL_KEYS): each key must have at least ${sealKeyCharsMin} characters.`
  }
}
