import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collectionNameOf, folderName } from '../../../storage/disk/folder-name.js';

test('plain names stand for themselves, other bytes are two hexadecimal digits', () => {
  assert.equal(folderName('plain-name_1'), 'plain-name_1');
  assert.equal(folderName('My Pictures'), '+4dy+20+50ictures');
  assert.equal(folderName('a.b+c%'), 'a+2eb+2bc+25');
  assert.equal(folderName('日'), '+e6+97+a5');
});

test('names that differ in case or Unicode form have folders that differ on every file system', () => {
  const names = ['name', 'Name', 'NAME', 'é', 'e\u0301'];
  const folders = new Set(names.map((name) => folderName(name).toLowerCase().normalize('NFC')));
  assert.equal(folders.size, names.length);
});

test('a folder name tells the collection', () => {
  for (const name of ['plain', 'With Space', '日本語 😀', 'a+b', '..', 'tab\t']) assert.equal(collectionNameOf(folderName(name)), name);
});

test('long names fit and stay apart', () => {
  const folders = ['あ'.repeat(255), `${'あ'.repeat(254)}い`, 'X'.repeat(255)].map(folderName);
  assert.equal(new Set(folders).size, 3);
  for (const folder of folders) assert.ok(folder.length <= 200 && /^[a-z0-9+]+$/.test(folder), folder);
});

test('no folder name is hidden, empty or a reserved one', () => {
  for (const name of ['.', '..', '.deleted-x', '/']) assert.match(folderName(name), /^\+/);
});
