/** The API describes settings in English. */
export const namesDe: Readonly<Record<string, readonly [title: string, description: string]>> = {
  'budgets.default': ['Budgets jedes Benutzers', 'Pro Tag oder Monat (UTC).'],
  'budgets.group': [
    'Budgets nach Gruppe',
    'Budgets einer Gruppe, die sich ihre Mitglieder teilen.',
  ],
  'budgets.key': ['Budgets nach API-Schlüssel', 'Budgets eines API-Schlüssels, nach seiner Id.'],
  'budgets.user': [
    'Budgets nach Benutzer',
    'Budgets eines Benutzers, nach seiner Id, statt der allgemeinen.',
  ],
  embedding_model: [
    'Embedding-Modell',
    'Das Embedding-Modell neuer Sammlungen; local-hash ist eingebaut.',
  ],
  'files.max_bytes': ['Größte Datei', 'Wie groß eine Datei höchstens ist.'],
  'files.people_picker': [
    'Suche nach Personen',
    'Ob Aufrufer nach Benutzern und Gruppen suchen dürfen, um mit ihnen zu teilen.',
  ],
  'files.trash_seconds': [
    'Zeit im Papierkorb',
    'Wie lange sich gelöschte Dateien wiederherstellen lassen.',
  ],
  'limits.default': ['Limits jedes Benutzers', 'Über alle seine Tokens und Schlüssel zusammen.'],
  'limits.group': [
    'Limits nach Gruppe',
    'Limits jedes Mitglieds einer Gruppe, statt der allgemeinen; von mehreren Gruppen gilt die großzügigste.',
  ],
  'limits.model': ['Limits nach Modell', 'Limits eines Modells, die sich alle Aufrufer teilen.'],
  'limits.user': [
    'Limits nach Benutzer',
    'Limits eines Benutzers, nach seiner Id, statt derer von Gruppen und der allgemeinen.',
  ],
  'models.access': [
    'Zugriff auf Modelle',
    'Modelle nur für Gruppen, neben den Regeln der Datei. Ein Modell mehrerer Regeln ist für die Gruppen aller; eines ohne Regel wird nicht weiter beschränkt.',
  ],
  rerank_top_n: [
    'Abschnitte nach dem Sortieren',
    'Wie viele Abschnitte der Reranker höchstens zurückgibt.',
  ],
  reranker_model: ['Reranker', 'Ein Modell mit mode = "rerank", das Suchergebnisse neu sortiert.'],
  'responses.ttl_seconds': [
    'Lebensdauer von Antworten',
    'Wie lange eine Antwort aufbewahrt wird, seit sie oder ihre letzte Fortsetzung entstand.',
  ],
  retrieval_k: ['Abschnitte je Frage', 'Wie viele Abschnitte das Modell bekommt.'],
  'service_desk.document_ids': [
    'Dokumente',
    'Ids der Dateien, aus denen der Service-Desk antwortet, ein eingebauter Agent für alle. Sie brauchen die Rolle Verwalter an jeder Datei.',
  ],
  'service_desk.model': [
    'Modell',
    'Das Modell des Service-Desks; ohne eines das erste, das Text erzeugt.',
  ],
}
