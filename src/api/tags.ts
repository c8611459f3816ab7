/** The chapters of the document, in the order of a reader's interest. */
export const tags = {
  Models: 'What can be called, and the small calls that are no conversations.',
  Responses: 'Conversations with models, whole or as streams, over HTTP and WebSocket.',
  Conversations: 'Items that several responses share.',
  'API keys': 'Credentials for programs.',
  Speech: 'Speech to text, live and from files.',
  Collections: 'Searchable sets of files.',
  'Vector stores': 'The same collections as the openai packages know them.',
  Embeddings: 'Moving collections to another embedding model while they are searched.',
  Files: 'Files and folders.',
  Sharing: 'Who may see, change and share what.',
  Agents: 'Stored configurations that are called like models.',
  'Model installer': 'Bringing models onto this machine.',
  Configuration: 'What administrators set while the system runs.',
  Directory: 'Users, service accounts, groups and what was done to them.',
  Translations: "Texts in place of the portal's own.",
  Branding: 'How the portal looks.',
  Messages: 'The Messages-compatible surface under /compat.',
  Operations: 'Probes for those who run the gateway.',
} as const

export type Tag = keyof typeof tags
