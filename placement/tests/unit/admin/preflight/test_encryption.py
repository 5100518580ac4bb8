"""The encryption of connections to other hosts."""

from oslotest import base
import sqlalchemy as sa

from placement.admin.preflight import encryption
from placement.admin.preflight.model import Result

LOCAL = (
    'mysql+pymysql://me@localhost/p',
    'mysql+pymysql://me@127.0.0.1/p?charset=utf8mb4',
    'mysql+mysqldb://me@[::1]:3306/p',
    'mysql+pymysql://me@db/p?unix_socket=/run/mysqld/mysqld.sock',
    'mysql+pymysql:///p',
    'postgresql+psycopg:///p',
    'postgresql+psycopg:///p?host=/run/postgresql',
    'postgresql+psycopg://me@/p?host=localhost&host=127.0.0.1',
    'postgresql+psycopg://me@db/p?hostaddr=127.0.0.1',
)
REMOTE = (
    'mysql+pymysql://me@db/p',
    'mysql+mysqldb://me@192.0.2.1/p',
    'mysql+pymysql://me@[2001:db8::1]/p',
    'mysql+pymysql://me@localhost.example.org/p',
    'postgresql+psycopg://me@db/p',
    'postgresql+psycopg://me@/p?host=db',
    'postgresql+psycopg://me@/p?host=localhost&host=db',
    'postgresql+psycopg://me@localhost/p?hostaddr=192.0.2.1',
)


class DatabaseTest(base.BaseTestCase):
    def judge(self, text: str, is_encrypted: bool, is_verified: bool) -> tuple[Result, str]:
        url = sa.make_url(text)
        verdict = encryption.judge_database(url, 'Connected.', is_encrypted, is_verified)
        return verdict.result, verdict.remedy

    def test_local_servers(self):
        for text in LOCAL:
            self.assertEqual((Result.OK, ''), self.judge(text, False, False), text)

    def test_other_hosts(self):
        for text in REMOTE:
            self.assertEqual((Result.OK, ''), self.judge(text, True, True), text)
            for is_encrypted in (False, True):
                result, remedy = self.judge(text, is_encrypted, False)
                self.assertEqual(Result.WARNING, result, text)
                self.assertEqual(not is_encrypted, 'on the server' in remedy)

    def test_the_remedy_names_the_parameters_of_the_driver(self):
        for driver, parameters in (
            ('mysql+pymysql', 'Add ssl_ca=FILE to'),
            ('mysql', 'Add ssl_mode=VERIFY_IDENTITY&ssl_ca=FILE to'),
            ('mysql+mysqldb', 'Add ssl_mode=VERIFY_IDENTITY&ssl_ca=FILE to'),
            ('postgresql+psycopg', 'Add sslmode=verify-full&sslrootcert=FILE to'),
        ):
            _, remedy = self.judge(f'{driver}://me@db/p', True, False)
            self.assertIn(parameters, remedy)
