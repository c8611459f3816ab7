export const audit = {
  'audit.about':
    'Wer wann was geändert hat. Einträge entstehen mit der Änderung selbst und enthalten keine Geheimnisse.',
  'audit.action': 'Aktion',
  'audit.any': 'Jede',
  'audit.by_key': 'mit dem API-Schlüssel',
  'audit.changes': 'Änderungen',
  'audit.export': 'Exportieren',
  'audit.from': 'Von',
  'audit.no_fields': 'Dieser Eintrag hat keine Felder.',
  'audit.none': 'Keine Einträge',
  'audit.none_hint':
    'Administrative Änderungen erscheinen hier: Gruppen, Benutzer, Schlüssel, Einstellungen, Freigaben. Wählen Sie einen längeren Zeitraum oder weniger Filter.',
  'audit.resource': 'Ressource',
  'audit.show': 'Anzeigen',
  'audit.show_name': '{action} von {id} anzeigen',
  'audit.system': 'Das System',
  'audit.title': 'Audit-Protokoll',
  'audit.to': 'Bis',
  'audit.when': 'Wann',
  'audit.who': 'Wer',
}
