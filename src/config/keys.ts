import { type TSchema, Type } from '@sinclair/typebox'

/** How one key is written down. Units are the last word of a name. */
type KeyNotes = { env?: string; secret?: true }

export const text = (description: string, notes: KeyNotes & { default?: string } = {}) =>
  Type.String({ minLength: 1, description, ...notes })
export const whole = (
  description: string,
  options: KeyNotes & { default: number; minimum: number; maximum?: number },
) => Type.Integer({ description, ...options })
export const flag = (description: string, value: boolean) =>
  Type.Boolean({ description, default: value })
export const section = <T extends Record<string, TSchema>>(description: string, keys: T) =>
  Type.Object(keys, { description, default: {}, additionalProperties: false })
export const entry = <T extends Record<string, TSchema>>(description: string, keys: T) =>
  Type.Object(keys, { description, additionalProperties: false })
