"""The number and the size of the forecasts that a process keeps."""

from oslotest import base

from placement.candidates import forecasts, model, names, request
from placement.candidates.forecasts import Forecast
from placement.candidates.paging import OnlyPage

FORECAST = Forecast(names.Found(request.Ids({}, {}, {}, {}), None), model.Query(()), OnlyPage(10))


def key(amount: int = 1, names: int = 1) -> forecasts.Key:
    amounts = tuple((f'CLASS{n}', amount) for n in range(names))
    return model.Query((model.Group('', amounts),)), None, 'depth-first'


class ForecastsTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        forecasts.clear()
        self.addCleanup(forecasts.clear)

    def test_an_equal_query(self):
        forecasts.remember(key(), FORECAST)
        self.assertEqual(FORECAST, forecasts.of(key()))
        self.assertIsNone(forecasts.of(key(amount=2)))

    def test_large_queries_are_not_remembered(self):
        largest = forecasts._MOST_NAMES - 1  # and one group
        forecasts.remember(key(names=largest), FORECAST)
        forecasts.remember(key(names=largest + 1), FORECAST)
        self.assertIsNotNone(forecasts.of(key(names=largest)))
        self.assertIsNone(forecasts.of(key(names=largest + 1)))

    def test_the_number_of_forecasts_is_limited(self):
        for amount in range(1, forecasts._MOST + 1):
            forecasts.remember(key(amount), FORECAST)
        forecasts.remember(key(), FORECAST)
        self.assertEqual(forecasts._MOST, len(forecasts._forecasts))
        forecasts.remember(key(10**6), FORECAST)
        self.assertEqual(1, len(forecasts._forecasts))
