export type JsonObject = Record<string, unknown>
export type Surface = 'responses' | 'messages'
