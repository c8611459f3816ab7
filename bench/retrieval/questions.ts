/** A question about one document, and what the passage that answers it contains. */
export type Question = {
  readonly text: string
  /** The package whose README answers it. */
  readonly document: string
  readonly answer: RegExp
}

/** READMEs of packages that `bun install` puts on every checkout: public documents of many authors. */
export const documents: readonly string[] = [
  ...['argparse', 'c12', 'chokidar', 'content-disposition', 'cookie', 'cookies', 'debug', 'dotenv'],
  ...['escalade', 'eventsource-parser', 'fflate', 'file-type', 'get-tsconfig', 'gpt-tokenizer'],
  ...['http-errors', 'ipaddr.js', 'jiti', 'js-yaml', 'mammoth', 'mitt', 'on-finished', 'open'],
  ...['openai', 'postgres', 'pure-rand', 'readdirp', 'semver', 'source-map', 'turndown', 'type-is'],
  ...['ws', 'zod', '@electric-sql/pglite', '@fastify/busboy', '@preact/signals-core'],
]

/** In the words of somebody who has not read the document; some in another language. */
export const questions: readonly Question[] = [
  {
    text: 'The file watcher fires before a large file is completely written. How do I wait until its size is stable?',
    document: 'chokidar',
    answer: /awaitWriteFinish/,
  },
  {
    text: 'How do I notice that the other end of a WebSocket connection has silently disappeared?',
    document: 'ws',
    answer: /isAlive|broken connections/,
  },
  {
    text: 'How do I get the IP address of a WebSocket client behind a reverse proxy?',
    document: 'ws',
    answer: /x-forwarded-for/i,
  },
  {
    text: 'Does loading the .env file overwrite a variable that the shell has already set?',
    document: 'dotenv',
    answer: /never modify|already (?:been )?set/i,
  },
  {
    text: 'Should I put the .env file with my passwords under version control?',
    document: 'dotenv',
    answer: /commit/i,
  },
  {
    text: 'How do I keep JavaScript in the page from reading a cookie?',
    document: 'cookie',
    answer: /httpOnly/i,
  },
  {
    text: 'How do I stop a cookie from being sent with cross-site requests?',
    document: 'cookie',
    answer: /sameSite/i,
  },
  {
    text: 'How do I turn on debug output for a single module of my program?',
    document: 'debug',
    answer: /DEBUG=/,
  },
  {
    text: 'Which updates does a caret in front of a version number allow?',
    document: 'semver',
    answer: /Caret Ranges/,
  },
  {
    text: 'How do I turn a sloppy string into a valid semantic version?',
    document: 'semver',
    answer: /coerc/i,
  },
  {
    text: 'How can I compress data without blocking the main thread?',
    document: 'fflate',
    answer: /async|worker/i,
  },
  {
    text: 'How do I convert a Word document into a web page?',
    document: 'mammoth',
    answer: /convertToHtml/,
  },
  {
    text: 'What happens to the pictures inside a Word document when it is converted?',
    document: 'mammoth',
    answer: /imgElement|images? (?:are|is)|convertImage/i,
  },
  {
    text: 'How do I keep some HTML tags unchanged when converting to Markdown?',
    document: 'turndown',
    answer: /keep/,
  },
  {
    text: 'Are my SQL queries safe when users type quotes and semicolons into a form?',
    document: 'postgres',
    answer: /injection/i,
  },
  {
    text: 'How do I roll back only a part of a database transaction?',
    document: 'postgres',
    answer: /savepoint/i,
  },
  {
    text: 'How can Postgres tell my program that rows have changed, so that I need not poll?',
    document: 'postgres',
    answer: /\blisten\b|subscribe/i,
  },
  {
    text: 'How do I check whether an IP address lies inside a network block?',
    document: 'ipaddr.js',
    answer: /CIDR|match\(/,
  },
  {
    text: 'How do I find the original source line for a position in minified code?',
    document: 'source-map',
    answer: /originalPositionFor/,
  },
  {
    text: 'How do I detect what kind of file an upload really is, whatever its name says?',
    document: 'file-type',
    answer: /magic number|fromBuffer/i,
  },
  {
    text: 'How do I register one handler that receives all events of an emitter?',
    document: 'mitt',
    answer: /\*/,
  },
  {
    text: 'How do I parse server-sent events from the body of a streaming fetch response?',
    document: 'eventsource-parser',
    answer: /createParser|EventSourceParserStream/,
  },
  {
    text: 'How do I get the TypeScript type that belongs to a validation schema?',
    document: 'zod',
    answer: /z\.infer|infer/i,
  },
  {
    text: "How do I open a link in the user's default browser?",
    document: 'open',
    answer: /browser/i,
  },
  {
    text: 'How do I list all files of a directory tree recursively, skipping some of them?',
    document: 'readdirp',
    answer: /filter/i,
  },
  {
    text: 'How do I set the file name of a download when it has umlauts in it?',
    document: 'content-disposition',
    answer: /filename/i,
  },
  {
    text: 'How do I create an error with an HTTP status such as not found?',
    document: 'http-errors',
    answer: /404|NotFound/,
  },
  {
    text: 'How do I run a callback once the HTTP response has been sent completely?',
    document: 'on-finished',
    answer: /onFinished/,
  },
  {
    text: 'How do I search for a file in this directory and each one above it?',
    document: 'escalade',
    answer: /parent/i,
  },
  {
    text: 'Does my prompt fit into the token limit of the model?',
    document: 'gpt-tokenizer',
    answer: /isWithinTokenLimit/,
  },
  {
    text: 'Does the client try again when the API answers that there were too many requests?',
    document: 'openai',
    answer: /retr(?:y|ies|ied)/i,
  },
  {
    text: 'How do I store a Postgres database in the browser so that it survives closing the tab?',
    document: '@electric-sql/pglite',
    answer: /IndexedDB|idb:/i,
  },
  {
    text: 'How do I create a signal that is recalculated whenever the signals it depends on change?',
    document: '@preact/signals-core',
    answer: /computed/,
  },
  {
    text: 'How do I get the same sequence of random numbers in every run?',
    document: 'pure-rand',
    answer: /seed/i,
  },
  {
    text: 'How do I import a TypeScript file at run time without building it first?',
    document: 'jiti',
    answer: /TypeScript/i,
  },
  {
    text: 'Wie verhindere ich, dass Skripte im Browser ein Cookie auslesen?',
    document: 'cookie',
    answer: /httpOnly/i,
  },
  {
    text: 'Wie erkenne ich den Typ einer Datei an ihrem Inhalt?',
    document: 'file-type',
    answer: /magic number|fromBuffer/i,
  },
  {
    text: 'Comment savoir si une adresse appartient à un sous-réseau ?',
    document: 'ipaddr.js',
    answer: /CIDR|match\(/,
  },
  {
    text: 'Jak poznám, že protistrana přerušila spojení WebSocket?',
    document: 'ws',
    answer: /isAlive|broken connections/,
  },
  {
    text: 'Πώς μετατρέπω ένα έγγραφο Word σε HTML;',
    document: 'mammoth',
    answer: /convertToHtml/,
  },
]
