import { idExample, instantExample } from '#api/shapes.ts'
import { json, operation } from '#docs/operation.ts'
import { noFile, noFolder, ownerId } from '#files/examples.ts'
import {
  accessRecord,
  principalList,
  type ShareRecord,
  shareDeleted,
  shareList,
  shareRecord,
} from './answer-schema.ts'
import { accessQuery, grantBody, principalsQuery, roleChange } from './schema.ts'

const tag = 'Sharing'

const share: ShareRecord = {
  id: idExample,
  object: 'share',
  principal: { type: 'group', id: 'staff', name: 'staff' },
  role: 'viewer',
  inherited_from: null,
  granted_by: ownerId,
  created_at: instantExample,
}
const noShare = `There is no share with the id "${idExample}".`
const inherited = {
  code: 'inherited',
  message: 'This comes from a folder above; change it there.',
}

const things = {
  files: { thing: 'file', article: 'a file', path: 'The id of the file.', absent: noFile },
  folders: {
    thing: 'folder',
    article: 'a folder',
    path: 'The id of the folder.',
    absent: noFolder,
  },
  collections: {
    thing: 'collection',
    article: 'a collection',
    path: 'The name or the id of the collection.',
    absent: 'There is no collection "handbook".',
  },
} as const

/** Of each kind of thing that can be shared. */
export function shareOperations(of: keyof typeof things) {
  return { ...readingOperations(things[of]), ...changingOperations(things[of]) }
}

type Thing = (typeof things)[keyof typeof things]

const notManager = ({ thing }: Thing) => `This takes the role manager on the ${thing}.`

function readingOperations(of: Thing) {
  const { article, path: id, absent } = of
  return {
    list: operation({
      tag,
      summary: `List the shares of ${article}`,
      description:
        'With those of folders above it. Who may not share it sees what gives them access, and no more.',
      path: { id },
      answers: {
        200: {
          description: 'All of them.',
          content: json(shareList, { object: 'list', data: [share] }),
        },
      },
      errors: { not_found: absent },
    }),
    access: operation({
      tag,
      summary: `Tell why somebody has access to ${article}`,
      path: { id },
      query: accessQuery,
      answers: {
        200: {
          description: 'The role and its reasons.',
          content: json(accessRecord, {
            object: 'access',
            user: { id: ownerId, name: 'ann' },
            role: 'owner',
            via: [{ type: 'owner' }, { type: 'share', share }],
          }),
        },
      },
      errors: {
        not_found: absent,
        permission_denied: notManager(of),
        unprocessable: '"user_id" must be the id of a user.',
      },
    }),
  }
}

function changingOperations(of: Thing) {
  const { article, path: id, absent } = of
  const ofShare = { id, share_id: 'The id of the share.' }
  return {
    add: operation({
      tag,
      summary: `Share ${article}`,
      description: [
        'With a user, a group or everyone. One principal has one role on a thing: sharing it again',
        'changes the role. A user who was never seen is named by the `subject` of their tokens. What is',
        'in a shared folder is shared with it. A thing is shared 1,000 times at most.',
      ].join(' '),
      path: { id },
      body: {
        content: json(grantBody, { principal: { type: 'group', id: 'staff' }, role: 'viewer' }),
      },
      answers: {
        200: { description: 'The role was changed.', content: json(shareRecord, share) },
        201: { description: 'It is shared.', content: json(shareRecord, share) },
      },
      errors: {
        not_found: absent,
        permission_denied: notManager(of),
        unprocessable: [
          '"principal.id" is required.',
          {
            code: 'principal_not_found',
            message: 'Nobody with this id was ever seen here.',
          },
          { code: 'principal_is_owner', message: 'Its owner has every right on it already.' },
          { code: 'too_many_shares', message: 'It is shared 1000 times, which is the limit.' },
        ],
        unknown_field: '"colour" is not a known field.',
      },
    }),
    change: operation({
      tag,
      summary: `Change the role of a share of ${article}`,
      path: ofShare,
      body: { content: json(roleChange, { role: 'editor' }) },
      answers: {
        200: {
          description: 'The share.',
          content: json(shareRecord, { ...share, role: 'editor' }),
        },
      },
      errors: {
        not_found: [absent, noShare],
        permission_denied: notManager(of),
        conflict: inherited,
        unprocessable: '"role" must be "viewer" or "editor" or "manager".',
        unknown_field: '"colour" is not a known field.',
      },
    }),
    remove: operation({
      tag,
      summary: `End a share of ${article}`,
      description: 'One may also give back what was given to oneself.',
      path: ofShare,
      answers: {
        200: {
          description: 'It has ended.',
          content: json(shareDeleted, { id: idExample, object: 'share', deleted: true }),
        },
      },
      errors: {
        not_found: [absent, noShare],
        permission_denied: notManager(of),
        conflict: inherited,
      },
    }),
  }
}

export const principalsOperation = operation({
  tag,
  summary: 'Find users and groups to share with',
  description: 'The first 20. An administrator may have switched it off.',
  query: principalsQuery,
  answers: {
    200: {
      description: 'Who was found.',
      content: json(principalList, {
        object: 'list',
        data: [{ type: 'user', id: ownerId, name: 'ann' }, share.principal],
      }),
    },
  },
  errors: {
    permission_denied: {
      code: 'people_picker_off',
      message: 'Users and groups cannot be searched for here; name them.',
    },
    unprocessable: '"q" is required.',
  },
})
