import { Type } from '@sinclair/typebox'
import { userIdOf } from '#auth/principal.ts'
import { oneOf, optional, parseFields, strict } from '#files/schema.ts'
import { compileChecker } from '#lib/schema.ts'
import { refusedField } from '#lib/unprocessable.ts'
import { isUuid } from '#lib/uuid.ts'
import type { GrantedRole } from './record.ts'
import type { NewGrant } from './shares.ts'

const nameCharsMax = 256
const role = () => oneOf('viewer', 'editor', 'manager')
const name = (description: string) =>
  Type.String({ description, minLength: 1, maxLength: nameCharsMax })

export const shareBody = strict({
  principal: strict({
    type: oneOf('user', 'group', 'everyone'),
    id: optional(name('The id of a user, the name of a group, or `*`.')),
    subject: optional(name('The subject of a user at the identity provider, instead of the id.')),
  }),
  role: role(),
})
export const roleChange = strict({ role: role() })
export const accessQuery = strict({
  user_id: Type.Optional(
    Type.String({
      format: 'uuid',
      description: 'The id of a user.',
    }),
  ),
})

const shareChecker = compileChecker(shareBody)
const roleChangeChecker = compileChecker(roleChange)
const granteesChecker = compileChecker(strict({ q: Type.Optional(name('')) }))

export function parseGrant(body: unknown): NewGrant {
  const {
    principal: { type, id, subject },
    role,
  } = parseFields(shareChecker, body)
  const grant = (id: string, mustBeKnown = false) => ({ grantee: { type, id }, mustBeKnown, role })
  if (subject && type !== 'user') {
    throw refusedField('principal.subject', 'requires the type "user"')
  }
  if (type === 'everyone') {
    if (id && id !== '*') throw refusedField('principal.id', 'must be "*" for everyone')
    return grant('*')
  }
  if (subject) {
    if (id) throw refusedField('principal.id', 'cannot be combined with "principal.subject"')
    return grant(userIdOf(requirePlain(subject, 'principal.subject')))
  }
  if (!id) throw refusedField('principal.id', 'is required')
  if (type === 'group') return grant(requirePlain(id, 'principal.id'))
  if (!isUuid(id)) throw refusedField('principal.id', 'must be the id of a user')
  return grant(id.toLowerCase(), true)
}

export function parseRoleChange(body: unknown): GrantedRole {
  return parseFields(roleChangeChecker, body).role
}

/** The text to search for. */
export const granteesQuery = {
  schema: Type.Object({ q: name('A part of the name of a group or of the subject of a user.') }),
  read(params: URLSearchParams): string {
    const { q } = parseFields(granteesChecker, Object.fromEntries(params))
    if (q === undefined) throw refusedField('q', 'is required')
    return requirePlain(q, 'q')
  },
}

function requirePlain(text: string, param: string): string {
  if (!/\p{Cc}/u.test(text) && text.isWellFormed()) return text
  throw refusedField(param, 'must be plain text on one line')
}
